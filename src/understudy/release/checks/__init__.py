"""What `verify` looks at, one concern per file. Each check returns its findings; none needs the private table."""
