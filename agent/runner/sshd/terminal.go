package sshd

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal of a session.
type terminal struct {
	name   string // value of TERM
	path   string
	master *os.File
	slave  *os.File // nil once a process has it
}

// window is a size in the format of the protocol.
type window struct{ Columns, Rows, Width, Height uint32 }

// requestTerminal opens a terminal with the size and modes that the client requests.
func (s *session) requestTerminal(payload []byte) bool {
	var q struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if s.term != nil || s.started || ssh.Unmarshal(payload, &q) != nil {
		return false
	}
	t, err := openTerminal(q.Term)
	if err != nil {
		s.say(err.Error())
		return false
	}
	_ = t.resize(window{q.Columns, q.Rows, q.Width, q.Height})
	t.apply([]byte(q.Modes))
	s.term = t
	return true
}

// openTerminal opens a new pair of master and slave.
func openTerminal(name string) (*terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	t := &terminal{name: name, master: master}
	var number int
	err = t.control(func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	})
	if err == nil {
		t.path = fmt.Sprintf("/dev/pts/%d", number)
		t.slave, err = os.OpenFile(t.path, os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	return t, nil
}

// control calls do with the descriptor of the master. The descriptor stays in the poller.
func (t *terminal) control(do func(fd int) error) error {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// attach makes the terminal the controlling terminal of a process.
func (t *terminal) attach(p *process) ([]*os.File, error) {
	p.stdin, p.stdout = t.master, t.master
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = t.slave, t.slave, t.slave
	p.cmd.SysProcAttr.Setctty = true
	theirs := []*os.File{t.slave}
	t.slave = nil
	return theirs, nil
}

func (t *terminal) close() {
	t.master.Close()
	if t.slave != nil {
		t.slave.Close()
	}
}

// resize sets the size of the terminal of a session.
func (s *session) resize(payload []byte) bool {
	var w window
	if s.term == nil || ssh.Unmarshal(payload, &w) != nil {
		return false
	}
	return s.term.resize(w) == nil
}

func (t *terminal) resize(w window) error {
	clip := func(n uint32) uint16 { return uint16(min(n, 1<<16-1)) }
	return t.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{
			Col: clip(w.Columns), Row: clip(w.Rows), Xpixel: clip(w.Width), Ypixel: clip(w.Height),
		})
	})
}

// apply sets the modes of RFC 4254, section 8. It skips unknown modes and modes of other systems.
func (t *terminal) apply(modes []byte) {
	_ = t.control(func(fd int) error {
		state, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		for len(modes) >= 5 && modes[0] > 0 && modes[0] < 160 {
			setMode(state, modes[0], binary.BigEndian.Uint32(modes[1:]))
			modes = modes[5:]
		}
		return unix.IoctlSetTermios(fd, unix.TCSETS, state)
	})
}

func setMode(state *unix.Termios, code byte, argument uint32) {
	if at, ok := characters[code]; ok {
		state.Cc[at] = uint8(argument) // 255 in the protocol and 0 in Linux disable the character
		if argument == 255 {
			state.Cc[at] = 0
		}
		return
	}
	f, ok := flags[code]
	if !ok {
		return
	}
	word := map[byte]*uint32{'i': &state.Iflag, 'l': &state.Lflag, 'o': &state.Oflag, 'c': &state.Cflag}[f.word]
	if f.mask != 0 { // the mode is one value of a field
		if argument != 0 {
			*word = *word&^f.mask | f.bits
		}
	} else if argument != 0 {
		*word |= f.bits
	} else {
		*word &^= f.bits
	}
}

var characters = map[byte]int{
	1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL, 7: unix.VEOL2,
	8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT,
	16: unix.VSWTC, 18: unix.VDISCARD,
}

type flag struct {
	word byte
	bits uint32
	mask uint32 // the bits of a field with several bits
}

var flags = map[byte]flag{
	30: {'i', unix.IGNPAR, 0}, 31: {'i', unix.PARMRK, 0}, 32: {'i', unix.INPCK, 0}, 33: {'i', unix.ISTRIP, 0},
	34: {'i', unix.INLCR, 0}, 35: {'i', unix.IGNCR, 0}, 36: {'i', unix.ICRNL, 0}, 37: {'i', unix.IUCLC, 0},
	38: {'i', unix.IXON, 0}, 39: {'i', unix.IXANY, 0}, 40: {'i', unix.IXOFF, 0}, 41: {'i', unix.IMAXBEL, 0}, 42: {'i', unix.IUTF8, 0},
	50: {'l', unix.ISIG, 0}, 51: {'l', unix.ICANON, 0}, 52: {'l', unix.XCASE, 0}, 53: {'l', unix.ECHO, 0},
	54: {'l', unix.ECHOE, 0}, 55: {'l', unix.ECHOK, 0}, 56: {'l', unix.ECHONL, 0}, 57: {'l', unix.NOFLSH, 0},
	58: {'l', unix.TOSTOP, 0}, 59: {'l', unix.IEXTEN, 0}, 60: {'l', unix.ECHOCTL, 0}, 61: {'l', unix.ECHOKE, 0}, 62: {'l', unix.PENDIN, 0},
	70: {'o', unix.OPOST, 0}, 71: {'o', unix.OLCUC, 0}, 72: {'o', unix.ONLCR, 0}, 73: {'o', unix.OCRNL, 0},
	74: {'o', unix.ONOCR, 0}, 75: {'o', unix.ONLRET, 0},
	90: {'c', unix.CS7, unix.CSIZE}, 91: {'c', unix.CS8, unix.CSIZE}, 92: {'c', unix.PARENB, 0}, 93: {'c', unix.PARODD, 0},
}
