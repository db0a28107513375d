"""com.microsoft::Attention, ::QAttention and ::MultiHeadAttention."""
