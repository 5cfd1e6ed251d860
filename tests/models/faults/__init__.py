"""What must hold when the network, the server or the model misbehaves (design: R3-R5, R8, T8, T9,
T12). Each test speaks to a real server on the loopback address; see tests/loopback."""
