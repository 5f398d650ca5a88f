"""The client core on sockets: connections to brokers, and a consumer over them."""
