"""What tests share: strategies that follow from the declarations, and the vectors."""
