package auth

import (
	"testing"
	"time"
)

// The test vectors of RFC 6238, appendix B, for SHA-1. They have eight digits, of which these codes
// are the last six.
func TestCodesOfTheRFC(t *testing.T) {
	secret := []byte("12345678901234567890")
	for at, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if got := codeAt(secret, at/30); got != want {
			t.Errorf("at %d the code is %s, want %s", at, got, want)
		}
	}
}

func TestCodesAreTakenAroundNowAndOnce(t *testing.T) {
	secret, at := []byte("12345678901234567890"), time.Unix(1234567890, 0)
	step := at.Unix() / 30
	for name, c := range map[string]struct{ of, last, want int64 }{
		"now":             {step, 0, step},
		"a step ago":      {step - 1, 0, step - 1},
		"a step ahead":    {step + 1, 0, step + 1},
		"two steps ago":   {step - 2, 0, 0},
		"two steps ahead": {step + 2, 0, 0},
		"used":            {step, step, 0},
		"older than used": {step - 1, step, 0},
		"newer than used": {step + 1, step, step + 1},
	} {
		if got := stepOf(secret, codeAt(secret, c.of), at, c.last); got != c.want {
			t.Errorf("%s: step %d, want %d", name, got, c.want)
		}
	}
	if stepOf(secret, "", at, 0) != 0 {
		t.Error("an empty code is taken")
	}
}
