"""Commands about whole models: validate, reduce, zoo."""
