package scopemount

// Sweep is one look at what is not used any more.
func (m *Mounts) Sweep() error { return m.sweep() }
