// Package live shows a lot on a terminal while it changes: a summary and a
// table that takes the whole screen, follows the terminal's size, and gives
// the screen back when it is done. What it draws is a pure function of the
// lot, the time and the size.
package live

import (
	"context"
	"io"
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Options say where a Screen is shown.
type Options struct {
	In    io.Reader // the person's keys; nil: none can be read
	Out   io.Writer // the terminal
	Env   []string  // TERM, COLORTERM, … as KEY=value
	Color bool
	Leave func() // called when the person leaves
}

// Screen is the live view of a lot. It implements show.Watcher.
type Screen struct {
	program *tea.Program
	done    chan struct{}
	err     error // why the program ended, nil when somebody wanted it to
}

// Start takes the terminal over, until Close or the end of ctx.
func Start(ctx context.Context, o Options) *Screen {
	options := []tea.ProgramOption{
		tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler(),
	}
	if !o.Color {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	s := &Screen{program: tea.NewProgram(&model{leave: o.Leave, now: time.Now()}, options...), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		// Not tea.WithContext: a program that is killed does not wait for who
		// reads its input.
		stop := context.AfterFunc(ctx, s.program.Quit)
		defer stop()
		_, s.err = s.program.Run()
	}()
	return s
}

// Show implements show.Watcher.
func (s *Screen) Show(l track.Lot, now time.Time) error { return s.send(looked{l, now}) }

// Silent implements show.Watcher: what is shown stays, and says how old it is.
func (s *Screen) Silent(silence show.Silence, now time.Time) error {
	return s.send(unheard{silence, now})
}

func (s *Screen) send(msg tea.Msg) error {
	select {
	case <-s.done:
		return s.err
	default:
		s.program.Send(msg)
		return nil
	}
}

// Close implements show.Watcher: the terminal is as it was before.
func (s *Screen) Close() error {
	s.program.Quit()
	<-s.done
	return s.err
}

// looked is the lot as it was seen just now, unheard that it could not be;
// tick is a second gone by.
type (
	looked struct {
		lot track.Lot
		now time.Time
	}
	unheard struct {
		silence show.Silence
		now     time.Time
	}
	tick time.Time
)

// model is what the screen shows.
type model struct {
	lot           *track.Lot    // nil: not looked at yet
	silence       *show.Silence // nil: Temporal answers
	now           time.Time
	stopped       time.Time // where the clocks stand while it does not
	width, height int
	first, fit    int // nodes that are scrolled by, and shown
	last          int // so many can be scrolled by
	leave         func()
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return everySecond() }

func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case looked:
		m.lot, m.silence, m.now = &msg.lot, nil, msg.now
	case unheard:
		if m.silence == nil {
			m.stopped = m.now // not when Temporal answered last: clocks do not go back
		}
		m.silence, m.now = &msg.silence, msg.now
	case tick:
		m.now = time.Time(msg)
		return m, everySecond()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

func (m *model) key(key string) tea.Cmd {
	switch key {
	case "q", "esc", "ctrl+c":
		m.leave()
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "up", "k":
		m.scroll(m.first - 1)
	case "down", "j":
		m.scroll(m.first + 1)
	case "pgup", "b":
		m.scroll(m.first - max(1, m.fit))
	case "pgdown", "space":
		m.scroll(m.first + max(1, m.fit))
	case "home", "g":
		m.scroll(0)
	case "end", "G":
		m.scroll(math.MaxInt)
	}
	return nil
}

// scroll brings a node to the top, as far as no room is left empty below the
// last one.
func (m *model) scroll(to int) {
	if m.lot == nil {
		return
	}
	m.first = max(0, min(to, m.last))
}

// View implements tea.Model.
func (m *model) View() tea.View {
	text := ""
	switch {
	case m.width <= 0 || m.height <= 0:
	case m.lot == nil:
		text = strings.Join(append([]string{"looking at the lot…"}, old(m.silence, m.now, m.width)...), "\n")
	default:
		var p page
		text, p = frame(view{*m.lot, m.now, m.silence, m.stopped}, m.width, m.height, m.first)
		m.first, m.fit, m.last = p.first, p.fit, p.last
	}
	v := tea.NewView(text)
	v.AltScreen = true
	return v
}
