package activities

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
	"github.com/ironlot/ironlot/internal/testenv"
)

// TestWhatIsRecordedOfAConfig: before it is sent that it will be, and behind it
// that the node took it, or that it did not.
func TestWhatIsRecordedOfAConfig(t *testing.T) {
	t.Parallel()
	cluster, err := talosnode.NewCluster("ours", "https://192.0.2.10:6443")
	require.NoError(t, err)
	good, err := talos.Render(talos.RenderInput{Base: talos.Named{Name: "worker.yaml", Data: cluster.Worker}, Hostname: "worker-1"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		faults talosnode.Faults
		config []byte
		want   []string
		fails  bool
	}{
		"taken":              {config: good.Bytes, want: []string{"to be sent", "taken"}},
		"the answer is lost": {faults: talosnode.Faults{AnswerLost: true}, config: good.Bytes, want: []string{"to be sent"}},
		"refused":            {config: []byte("machine: ["), want: []string{"to be sent", "not sent"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, err := talosnode.Start(t.Context(), talosnode.Options{Addr: testenv.Nobody(), Trustd: talosnode.NewTrustd(), Faults: c.faults})
			require.NoError(t, err)
			t.Cleanup(node.Stop)
			host, port, err := net.SplitHostPort(node.Addr())
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				seen, err := talos.Probe(t.Context(), node.Addr())
				return err == nil && seen.State == talos.Maintenance
			}, time.Minute, 20*time.Millisecond)
			var recorded []string
			p := &applying{secrets: &secrets{config: &talos.Rendered{Bytes: c.config}}}
			p.in = worker1(func(in *run.PhaseInput) {
				in.Facts.Address = host
				in.Node.TalosPort, err = strconv.Atoi(port)
			})
			require.NoError(t, err)
			p.commit = func(it *run.Intent) error {
				switch {
				case it == nil:
					recorded = append(recorded, "not sent")
				case it.Sent:
					recorded = append(recorded, "taken")
				default:
					recorded = append(recorded, "to be sent")
				}
				return nil
			}
			require.Equal(t, c.fails, p.send(t.Context()) != nil)
			require.Equal(t, c.want, recorded)
			require.Equal(t, name == "taken", !p.taken.IsZero())
		})
	}
}
