package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/berthhq/berth/manager"
)

// firstLogin is what the data directory keeps, readable by root alone, until
// the generated password has been changed: enough for the demo to log in.
type firstLogin struct {
	URL      string `json:"url"`
	Email    string `json:"email"`
	Password string `json:"password"`
}

// announceFirstLogin makes the first superadmin of an empty database and
// prints the generated password, this once.
func announceFirstLogin(ctx context.Context, m *manager.Manager, email, keep string) error {
	password, created, err := m.Bootstrap(ctx)
	if err != nil {
		return fmt.Errorf("make the first superadmin: %w", err)
	}
	if !created {
		return nil
	}
	fmt.Printf("\n  First superadmin: %s\n  Password:         %s\n  (printed this once; change it after the first login)\n", email, password)
	if keep == "" {
		return nil
	}
	b, err := json.Marshal(firstLogin{Email: email, Password: password})
	if err != nil {
		return err
	}
	return os.WriteFile(keep, b, 0o600)
}

// updateFirstLogin notes the present URL, or removes the file once the
// generated password is no longer in use.
func updateFirstLogin(ctx context.Context, m *manager.Manager, path, url string) error {
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var f firstLogin
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	initial, err := m.InitialPassword(ctx, f.Email)
	if err != nil {
		return err
	}
	if !initial {
		return os.Remove(path)
	}
	f.URL = url
	if b, err = json.Marshal(f); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
