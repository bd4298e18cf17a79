"""Systems of the 2018 NIST challenge, generalised."""
