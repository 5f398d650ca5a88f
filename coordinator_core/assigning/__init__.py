"""Groups as arrays, the assignor interface, combinators and limits."""
