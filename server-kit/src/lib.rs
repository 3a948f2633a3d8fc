//! Flags of the contract, listening sockets, CPU count: what every Rust server under test needs and none should write again.
