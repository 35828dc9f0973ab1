"""What is asked, in public terms, and the one way from a question to its answer."""
