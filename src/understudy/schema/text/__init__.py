"""The YAML of schema files: parsing it strictly, reading values out of it, and writing it."""
