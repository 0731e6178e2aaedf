package main

import "testing"

func TestMain(m *testing.M) { testMain(m) }

func newFake(t *testing.T) *fake { return newServer(t, commands) }
