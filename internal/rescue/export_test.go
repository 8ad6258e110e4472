package rescue

import "time"

// HurryHandshake shortens how long a silent peer is waited for at the login.
func (d *Dialer) HurryHandshake(wait time.Duration) { d.timing.handshake = wait }

// HurryKeepalive shortens how long one is waited for afterwards.
func (d *Dialer) HurryKeepalive(every, wait time.Duration) {
	d.timing.keepaliveEvery, d.timing.keepaliveWait = every, wait
}

// HurryKeep changes how long a session is kept that nobody uses.
func (d *Dialer) HurryKeep(wait time.Duration) { d.timing.keep = wait }
