// Package talosnode is a Talos node of the lab: the real machinery gRPC API
// over real TLS, with configs checked by machinery's own code, and none of
// the operating system below it. It goes through the states of a machine that
// boots Talos 1.13.8 from a written disk, in the order and with the answers
// that were seen on the real one.
//
// Nothing here is a real node, and it says so: the build in its Version is
// "lab-simulated".
package talosnode
