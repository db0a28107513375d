"""The family recurrent: RNN, GRU and LSTM."""
