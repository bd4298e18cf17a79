"""What a schema leaves open about the codes of a column, settled through the door: bins and rare labels."""
