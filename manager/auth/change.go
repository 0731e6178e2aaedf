package auth

// ChangePasswordInput is the old password, to prove it is really him, and the new.
type ChangePasswordInput struct {
	Current string
	New     string
}
