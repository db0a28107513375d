"""Descriptions of the family recurrent: RNN, GRU and LSTM."""
