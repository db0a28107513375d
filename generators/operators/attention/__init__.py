"""The family attention: attention, rotary embeddings, the embedding layer."""
