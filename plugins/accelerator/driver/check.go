package driver

import pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"

// Checked is a Checker's finding, in words for either outcome.
func Checked(name string, ok bool, good, bad string) *pb.Check {
	if ok {
		return &pb.Check{Name: name, Ok: true, Detail: good}
	}
	return &pb.Check{Name: name, Detail: bad}
}

// Optional marks a finding about a part that the devices work without: a warning at
// most.
func Optional(c *pb.Check) *pb.Check {
	c.Optional = true
	return c
}

// Tried is the finding of who tried: good, or the error and what is to be expected.
func Tried(name string, err error, good, then string) *pb.Check {
	if err == nil {
		return Checked(name, true, good, "")
	}
	if then != "" {
		then = "; " + then
	}
	return Checked(name, false, "", Clean(err.Error(), 200)+then)
}
