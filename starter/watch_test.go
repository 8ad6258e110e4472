package main

import (
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
)

// terminal is a real pseudo terminal, and an emulator that shows what a person
// would see on it.
type terminal struct {
	screen      *vt.SafeEmulator
	master, tty *os.File
}

// sitAt lets a console's person sit at a new terminal.
func sitAt(t *testing.T, c *console, width, height int) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	require.NoError(t, err)
	s := &terminal{screen: vt.NewSafeEmulator(width, height), master: master, tty: tty}
	s.resize(t, width, height)
	go func() { _, _ = io.Copy(s.screen, master) }()
	// What the terminal answers to the program's questions.
	go func() { _, _ = io.Copy(master, s.screen) }()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = master.Close()
		// Not the screen's Close, which races with its Read: the end of its
		// answers ends the reader.
		_ = s.screen.InputPipe().(io.Closer).Close()
	})
	c.vars["TERM"] = "xterm-256color"
	c.stdin, c.stdout, c.stdinTerminal = tty, tty, true
	c.terminal = func() (int, int, bool) {
		rows, columns, err := pty.Getsize(tty)
		return columns, rows, err == nil
	}
	return s
}

func (s *terminal) resize(t *testing.T, width, height int) {
	t.Helper()
	require.NoError(t, pty.Setsize(s.tty, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)}))
	s.screen.Resize(width, height)
	// The kernel tells a terminal's own processes; this one is none of them.
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH))
}

func (s *terminal) shows(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.text(), text) }, time.Minute, 20*time.Millisecond,
		"the screen shows %q, in the end not:\n%s", text, lateText(s.text))
}

// lateText is made when it is printed.
type lateText func() string

func (f lateText) String() string { return f() }

func (s *terminal) text() string { return ansi.Strip(s.screen.Render()) }

func (s *terminal) types(t *testing.T, keys string) {
	t.Helper()
	_, err := io.WriteString(s.master, keys)
	require.NoError(t, err)
}

// leaves presses a key until the command has ended, as people do: a key that
// comes between the emulator's answers to the screen's questions may be lost.
func (s *terminal) leaves(t *testing.T, code <-chan int, press func()) int {
	t.Helper()
	again := time.NewTicker(2 * time.Second)
	defer again.Stop()
	for range 30 {
		press()
		select {
		case ended := <-code:
			return ended
		case <-again.C:
		}
	}
	t.Fatalf("the screen is not left:\n%s", s.text())
	return 0
}

// testScreen watches a lot on a terminal, and leaves.
func testScreen(t *testing.T, c *cluster) {
	k := newConsole(t, c.address)
	s := sitAt(t, k, 80, 24)
	path := lottest.Lot(t, "block-screen", 2)
	rename(t, path, "0000-4000-8000", "0005-4000-8000")
	code := make(chan int, 1)
	go func() { code <- k.run(t.Context(), []string{"provision", "--batch", path, "--yes"}) }()
	s.shows(t, "node-1  running  wait-ssh")
	s.shows(t, "░  25% 190.7 MiB/s")
	s.shows(t, "\nwait-ssh 1")
	require.True(t, s.screen.IsAltScreen())
	require.NotContains(t, s.text(), "IN PHASE")
	s.resize(t, 120, 30)
	s.shows(t, "IN PHASE")

	require.Equal(t, exitInterrupted, s.leaves(t, code, func() { s.types(t, "q") }))
	s.shows(t, "The runs go on. Come back with `starter status block-screen --watch`.")
	require.False(t, s.screen.IsAltScreen(), "the screen is given back")
	require.Contains(t, s.text(), "What is ERASED", "with what was on it")

	// Ctrl-C is a key there; without a keyboard the signal ends the context.
	for _, leave := range []func(context.CancelFunc){
		func(context.CancelFunc) { s.types(t, "\x03") },
		func(cancel context.CancelFunc) { cancel() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { code <- k.run(ctx, []string{"status", "block-screen", "-w"}) }()
		eventually(t, "the screen is taken", s.screen.IsAltScreen)
		s.shows(t, "node-2  queued")
		require.Equal(t, exitInterrupted, s.leaves(t, code, func() { leave(cancel) }))
		cancel()
		eventually(t, "the screen is given back", func() bool { return !s.screen.IsAltScreen() })
	}

	// A terminal that can do nothing gets lines.
	k.vars["TERM"] = "dumb"
	for _, node := range []string{"node-1", "node-2"} {
		eventually(t, node+" has a run", func() bool { // the worker waits for the control plane to end
			return k.again().starter("abort", "block-screen", node) == exitOK
		})
	}
	require.Equal(t, exitAborted, k.starter("status", "block-screen", "-w"))
	require.False(t, s.screen.IsAltScreen())
	s.shows(t, "0 of 2 nodes Ready (2 aborted)")
}
