package simulator

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// State is the state of a job.
type State string

// The states, in order; the last two are final.
const (
	Queued  State = "queued"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
)

// Job is work that a product does after its response.
type Job struct {
	ID     string // a UUID
	Number int    // for products that number their jobs
	What   string // for people
	State  State
	Err    error // of a failed job: an error of the product
	Begun  time.Time
	Ended  time.Time
}

// Jobs are the jobs of a simulator.
type Jobs struct {
	server *Server
	mu     sync.Mutex
	all    map[string]*Job
	fail   []error
}

func newJobs(a *Server) *Jobs { return &Jobs{server: a, all: map[string]*Job{}} }

// Start starts a job: it is queued, then running, and then work is called. With a negative JobTime
// it has ended when Start returns.
func (j *Jobs) Start(what string, work func() error) Job {
	j.mu.Lock()
	job := &Job{ID: uuid.NewString(), Number: len(j.all) + 1, What: what, State: Queued, Begun: time.Now()}
	j.all[job.ID] = job
	if len(j.fail) > 0 {
		reason := j.fail[0]
		j.fail = j.fail[1:]
		work = func() error { return reason }
	}
	j.mu.Unlock()

	pause := j.server.options.JobTime / 2
	run := func() {
		j.wait(pause)
		j.set(job, Running, nil)
		j.wait(pause)
		if err := work(); err != nil {
			j.set(job, Failed, err)
		} else {
			j.set(job, Done, nil)
		}
	}
	if j.server.options.JobTime < 0 {
		run()
	} else {
		j.server.work.Go(run)
	}
	return j.look(job)
}

// FailNext makes the next job fail with the error instead of doing its work.
func (j *Jobs) FailNext(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail = append(j.fail, err)
}

// Get returns the present state of a job.
func (j *Jobs) Get(id string) (Job, bool) {
	j.mu.Lock()
	job, ok := j.all[id]
	j.mu.Unlock()
	if !ok {
		return Job{}, false
	}
	return j.look(job), true
}

// ByNumber returns a job by its number.
func (j *Jobs) ByNumber(n int) (Job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, job := range j.all {
		if job.Number == n {
			return *job, true
		}
	}
	return Job{}, false
}

func (j *Jobs) look(job *Job) Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return *job
}

func (j *Jobs) set(job *Job, s State, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	job.State, job.Err = s, err
	if s == Done || s == Failed {
		job.Ended = time.Now()
	}
}

func (j *Jobs) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-j.server.ctx.Done():
	}
}
