"""Commands that look at results: comparisons, leaf sizes, pooled estimates."""
