package driver

import pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"

// Checked returns the result of a check, with a message for each outcome.
func Checked(name string, ok bool, good, bad string) *pb.Check {
	if ok {
		return &pb.Check{Name: name, Ok: true, Detail: good}
	}
	return &pb.Check{Name: name, Detail: bad}
}

// Optional turns a failure of a check into a warning, for a component that the devices do not
// require.
func Optional(c *pb.Check) *pb.Check {
	c.Optional = true
	return c
}

// Tried returns the result of an attempt: the message good, or the error and its consequences.
func Tried(name string, err error, good, then string) *pb.Check {
	if err == nil {
		return Checked(name, true, good, "")
	}
	if then != "" {
		then = "; " + then
	}
	return Checked(name, false, "", Clean(err.Error(), 200)+then)
}
