// Package talos is everything that Ironlot says to Talos Linux: it renders
// and checks machine configs before anything is touched, looks at a node's
// API, hands over the config once, and waits until the node is Ready. It is
// built on the machinery of Talos 1.13.
//
// No error or log of this package quotes a secret of a config: see redact.
package talos
