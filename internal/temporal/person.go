package temporal

import (
	"cmp"
	"os"
	"os/user"

	"go.temporal.io/sdk/contrib/envconfig"
)

// Person is who asks, for the histories that others read later: user@host. The
// SDK would tell the process, which is gone by then and nobody anyway.
func Person(lookup envconfig.EnvLookup) string {
	name, _ := lookup.LookupEnv("SUDO_USER") // root is no person
	if u, err := user.Current(); name == "" && err == nil {
		name = cmp.Or(u.Username, "uid "+u.Uid)
	}
	host, _ := os.Hostname()
	return cmp.Or(name, "someone") + "@" + cmp.Or(host, "unknown")
}
