package sshmux

// Pieces returns the number of pieces of data that wait for the program.
func (ch *Channel) Pieces() int {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return len(ch.out.pieces)
}
