// Package temporal connects to Temporal the way its own tools do: the
// TEMPORAL_* environment and the profiles of its configuration file.
package temporal

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/ironlot/ironlot/internal/fault"
)

// dialTimeout bounds one try to reach the server.
const dialTimeout = 10 * time.Second

// Options say which Temporal to use. What is empty comes from the TEMPORAL_*
// environment, then from the profile, then from the SDK's defaults.
type Options struct {
	Address   string // host:port
	Namespace string
	Profile   string // of Temporal's configuration file
	Identity  string // who asks, for histories; empty: the process
	Logger    log.Logger
	Lookup    envconfig.EnvLookup // nil: the process's environment
	Absent    string              // what to do when nothing listens there; empty: start one, or name the right one
}

// Connection is a client and what it is connected to.
type Connection struct {
	client.Client
	Address   string
	Namespace string
}

// Dial connects and makes sure that the server answers. Errors are
// NeedsOperator when the settings are wrong, Transient when nobody answers.
func Dial(ctx context.Context, o Options) (*Connection, error) {
	options, err := Resolve(o)
	if err != nil {
		return nil, err
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(dialing, options)
	if err != nil {
		reason, remedy := why(ctx, options, err)
		if remedy == startOrName && o.Absent != "" {
			remedy = o.Absent
		}
		e := fault.New(fault.Transient, remedy, "Temporal does not answer at %s: %s", options.HostPort, reason)
		e.Cause = err
		return nil, e
	}
	return &Connection{Client: c, Address: options.HostPort, Namespace: options.Namespace}, nil
}

// Resolve gives the client options without connecting.
func Resolve(o Options) (client.Options, error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
		ConfigFileProfile: o.Profile, EnvLookup: o.Lookup,
	})
	if err != nil {
		return client.Options{}, fault.Operator("check TEMPORAL_* and Temporal's configuration file", "the settings for Temporal cannot be read: %w", err)
	}
	if o.Address != "" {
		options.HostPort = o.Address
	}
	if o.Namespace != "" {
		options.Namespace = o.Namespace
	}
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.Logger, options.Identity = o.Logger, o.Identity
	if onThisComputer(options.HostPort) {
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	return options, checkAddress(options.HostPort)
}

// onThisComputer reports whether an address is the loopback's. There, gzip
// takes processor time and memory of both ends, and there is no network to spare.
func onThisComputer(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// checkAddress refuses what the SDK would dial in vain. Addresses with a
// resolver of gRPC's (dns:///host:port) are for the SDK to judge.
func checkAddress(address string) error {
	if strings.Contains(address, ":///") {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || host == "" {
		return fault.Operator("give host:port, such as 127.0.0.1:7233, in --address, TEMPORAL_ADDRESS or the profile",
			"%q is no address of Temporal", address)
	}
	return nil
}
