"""Built-in tables to try understudy on: simulated people only, so nothing here needs protection."""
