package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
)

// Bounds of what is read from standard input, in bytes.
const (
	maxBefore  = 64 << 10
	maxRequest = 1 << 20
)

// readRequest reads the JSON behind the marker line. What stands before it
// may be a password that nobody asked for: it is not kept and never told.
func readRequest(in io.Reader, request any) error {
	r := bufio.NewReader(io.LimitReader(in, maxBefore+maxRequest))
	for {
		line, err := r.ReadString('\n')
		if strings.TrimRight(line, "\r\n") == api.StdinMarker {
			break
		}
		if err != nil {
			return fault.Operator("write the line "+api.StdinMarker+" and a JSON request behind it to standard input", "there is no request on standard input")
		}
	}
	d := json.NewDecoder(io.LimitReader(r, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(request); err != nil {
		// The decoder's words can quote what it has read.
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) {
			return fault.Operator("use a worker and an agent of one version", "the request's field %q has the wrong type", typed.Field)
		}
		return fault.Operator("use a worker and an agent of one version", "the request on standard input is not the JSON that this agent expects")
	}
	return nil
}
