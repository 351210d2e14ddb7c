"""Mutation testing: changes one thing in the code at a time and sees whether a test fails."""
