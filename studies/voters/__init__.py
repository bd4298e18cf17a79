"""Parts of the study of young voters: its tables, its measures, and the printed statements."""
