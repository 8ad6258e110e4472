//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ironlot/ironlot/internal/fault"
)

// postgres is a throw-away PostgreSQL cluster that listens on a Unix socket
// only, with all settings but that at their defaults.
type postgres struct {
	*child
	programs string              // directory of initdb, postgres and pg_isready
	home     string              // the cluster and the socket; others may not enter
	as       *syscall.Credential // nil: who runs the benchmark
}

// superuser is the cluster's, and Temporal's.
const superuser = "temporal"

// findPostgres gives the directory with PostgreSQL's server programs, the
// newest of what Debian has under root (a directory a major version), else
// what is on PATH.
func findPostgres(root string) (string, error) {
	found, err := filepath.Glob(filepath.Join(root, "*", "bin", "initdb"))
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		major := func(path string) float64 {
			version, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(filepath.Dir(path))), 64) // 0 is the oldest
			return version
		}
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(major(a), major(b)) })), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fault.Operator("install Debian's package postgresql", "PostgreSQL's initdb is neither in %s nor on PATH", root)
	}
	return filepath.Dir(path), nil
}

// startPostgres makes a cluster in a directory and starts it.
func startPostgres(ctx context.Context, programs, state string) (*postgres, error) {
	p := &postgres{programs: programs, home: filepath.Join(state, "postgres")}
	if err := os.Mkdir(p.home, 0o700); err != nil {
		return nil, err
	}
	if err := p.leaveRoot(state); err != nil {
		return nil, err
	}
	initdb := p.command("initdb", "--pgdata", p.data(), "--username", superuser, "--auth", "trust", "--encoding", "UTF8", "--locale", "C")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb cannot make a cluster in %s: %w: %s", p.data(), err, lastLine(out))
	}
	var err error
	p.child, err = startChild("PostgreSQL", p.command("postgres", "-D", p.data(), "-k", p.home, "-c", "listen_addresses="), filepath.Join(state, "postgres.log"))
	if err != nil {
		return nil, err
	}
	// Its stop, a SIGINT, ends all sessions and closes the cluster.
	if err := p.until(ctx, p.answers); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *postgres) data() string { return filepath.Join(p.home, "data") }

// leaveRoot has PostgreSQL run as the user postgres where the benchmark runs
// as root, which PostgreSQL refuses.
func (p *postgres) leaveRoot(state string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		return fault.Operator("install Debian's package postgresql, which makes one", "PostgreSQL refuses to run as root, and this machine has no user for it: %w", err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return err
	}
	p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(p.home, int(uid), int(gid)); err != nil {
		return err
	}
	return os.Chmod(state, 0o711) // to be passed, not to be listed
}

// command is one of PostgreSQL's programs, in a process group of its own:
// Ctrl-C is the benchmark's, which stops Temporal first.
func (p *postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.programs, name), args...)
	cmd.Dir, cmd.Env = p.home, []string{"LC_ALL=C", "PATH=" + p.programs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as, Setpgid: true}
	return cmd
}

// answers fails while the cluster takes no connections.
func (p *postgres) answers() error {
	return p.command("pg_isready", "--quiet", "--host", p.home, "--username", superuser).Run()
}

// version is what PostgreSQL calls itself, as "15.18".
func (p *postgres) version() (string, error) {
	out, err := p.command("postgres", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("postgres does not tell its version: %w", err)
	}
	// postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)
	_, version, _ := strings.Cut(string(out), "(PostgreSQL) ")
	version, _, _ = strings.Cut(strings.TrimSpace(version), " ")
	return version, nil
}
