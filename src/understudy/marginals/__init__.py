"""The small language every room speaks: domains, cliques, partitions, answers and the transcript of answers."""
