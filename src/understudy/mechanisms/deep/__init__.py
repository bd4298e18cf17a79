"""Deep generative methods: networks trained through the door."""
