package scopemount

// Sweep unmounts unused scopes once.
func (m *Mounts) Sweep() error { return m.sweep() }
