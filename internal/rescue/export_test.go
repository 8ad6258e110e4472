package rescue

import "time"

// Hurry shortens how long a silent peer is waited for.
func (d *Dialer) Hurry(every, wait time.Duration) {
	d.timing.keepaliveEvery, d.timing.keepaliveWait = every, wait
	d.timing.handshake = wait
}
