"""Parts of the study behind the chooser page: its tables, its measures, its words."""
