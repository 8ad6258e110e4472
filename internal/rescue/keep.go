package rescue

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// boot is what a login leads to: the host key is another one with every boot.
type boot struct{ addr, user, hostKey string }

func (t Target) boot() boot { return boot{t.addr(), t.User, t.HostKey} }

// kept is a session that nobody uses at the moment.
type kept struct {
	session *Session
	expiry  *time.Timer
}

// Keep leaves a session to the next Resume of its boot, which need not log in
// and prove the agent again. It is closed when nobody takes it within 30 s:
// Temporal hands the next phase of a run over in a moment, and a run that
// stops holds no login. The caller must not use it any more.
func (d *Dialer) Keep(s *Session) {
	at := s.target
	at.HostKey = s.hostKey
	key := at.boot()
	k := &kept{session: s}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.kept[key]; old != nil {
		old.end()
	}
	d.kept[key] = k
	k.expiry = time.AfterFunc(d.timing.keep, func() { d.expire(key, k) })
}

// Resume gives a kept session to the boot that has the pinned host key, if it
// still answers, or else logs in, with the errors of Connect.
func (d *Dialer) Resume(ctx context.Context, t Target) (*Session, error) {
	if s := d.take(t.boot()); s != nil {
		if err := s.ping(); err == nil {
			d.log.Debug("the session goes on", zap.String("address", t.addr()))
			return s, nil
		}
		s.Close()
	}
	return d.Connect(ctx, t)
}

// Close ends the sessions that are kept.
func (d *Dialer) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, k := range d.kept {
		delete(d.kept, key)
		k.end()
	}
}

// take gives a kept session to one caller, nil when there is none.
func (d *Dialer) take(b boot) *Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[b]
	if k == nil {
		return nil
	}
	delete(d.kept, b)
	k.expiry.Stop()
	return k.session
}

// expire closes a session that is still kept.
func (d *Dialer) expire(b boot, k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept[b] == k {
		delete(d.kept, b)
		k.end()
	}
}

func (k *kept) end() {
	k.expiry.Stop()
	k.session.Close()
}
