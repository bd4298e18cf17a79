"""Small statistical models fitted to coded rows: regressions and classification trees."""
