package temporal_test

import (
	"testing"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/temporal"
)

func TestResolveChecksTheAddress(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"":                      true, // the default
		"127.0.0.1:7233":        true,
		"[::1]:7233":            true,
		"temporal.example:7233": true,
		"dns:///temporal:7233":  true,
		"http://127.0.0.1:7233": false,
		"temporal.example":      false,
		"127.0.0.1:99999":       false,
		"127.0.0.1:":            false,
		":7233":                 false,
		"::1:7233":              false,
	} {
		_, err := temporal.Resolve(temporal.Options{Address: address, Lookup: variables{}})
		if (err == nil) != ok || err != nil && fault.ClassOf(err) != fault.NeedsOperator {
			t.Errorf("%q: %v", address, err)
		}
	}
}
