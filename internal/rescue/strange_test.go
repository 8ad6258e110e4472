package rescue_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/rescue/rescuetest"
)

// TestStrangeAnswers: a system that is no Linux rescue, and an agent of
// another version, are named as such.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	ensure := func(ctx context.Context, s *rescue.Session) error { return s.EnsureAgent(ctx) }
	follow := func(ctx context.Context, s *rescue.Session) error {
		if err := s.EnsureAgent(ctx); err != nil {
			return err
		}
		_, err := s.FollowJob(ctx, "boot", "key", func(api.JobStatus) {})
		return err
	}
	const otherVersion = "; check that the worker and its agent are of one version"
	for want, c := range map[string]struct {
		command, out string // what a command says instead of what it should
		exit         uint32
		do           func(context.Context, *rescue.Session) error
	}{
		"uname -m failed with exit status 127 at ADDR; check that the server runs its Linux rescue system": {
			"uname -m", "", 127, ensure},
		"uname -m at ADDR sent a line of more than 16777216 bytes; check what answers there": {
			"uname -m", strings.Repeat("x", 16<<20+1), 0, ensure},
		"agent version at ADDR ended without an answer" + otherVersion: {
			"version", "", 0, ensure},
		"agent job follow --key key --boot-id boot at ADDR sent a line that is no job status" + otherVersion: {
			"job follow --key key --boot-id boot", "hello\n", 0, follow},
		"agent job follow --key key --boot-id boot at ADDR ended without an answer" + otherVersion: {
			"job follow --key key --boot-id boot", "", 0, follow},
	} {
		var ours rescue.Binary
		dialer := rescuetest.Dialer(t, func(o *rescue.Options) { ours = o.Agents["amd64"] })
		target := serve(t, sshd{home: t.TempDir(), says: func(line string) (string, uint32) {
			switch {
			case strings.HasSuffix(line, c.command):
				return c.out, c.exit
			case line == "uname -m":
				return "x86_64\n", 0
			}
			return fmt.Sprintf(`{"value":{"sha256":%q}}`+"\n", ours.SHA256), 0
		}})
		s, err := dialer.Connect(t.Context(), target)
		require.NoError(t, err)
		err = c.do(t.Context(), s)
		require.NoError(t, s.Close())
		require.EqualError(t, err, strings.ReplaceAll(want, "ADDR", net.JoinHostPort(target.Address, strconv.Itoa(target.Port))))
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	}
}
