-- The invariants of the database, looked at by every transaction at its end.
-- They are not part of the product: only the simulation has them.
CREATE SCHEMA sim;

-- From lifecycle.CanMove.
CREATE TABLE sim.moves (a text, b text, PRIMARY KEY (a, b));

-- Where the history of a session stands.
CREATE TABLE sim.history (session uuid PRIMARY KEY, status text NOT NULL);

-- What policies allow: cores to a project, sessions to a person.
CREATE TABLE sim.limits (holder uuid PRIMARY KEY, most bigint NOT NULL);

CREATE FUNCTION sim.broken(rule text, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'SIM01', HINT = rule, MESSAGE = what;
END $$;

CREATE FUNCTION sim.thousandths(slot text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT slot = 'cpu' OR slot LIKE '%.shares' $$;

CREATE FUNCTION sim.amount(slot text, amount text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT (amount::numeric * CASE WHEN sim.thousandths(slot) THEN 1000 ELSE 1 END)::bigint $$;

-- I1: no device holds more than it has. I5: nobody has more than policies allow.
CREATE FUNCTION sim.held() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE held bigint; device record;
BEGIN
  SELECT coalesce(sum(amount), 0) INTO held FROM allocations
    WHERE device_id = NEW.device_id AND slot = NEW.slot AND freed_at IS NULL;
  SELECT d.device_id, d.capacity ->> NEW.slot AS has, a.name INTO device
    FROM devices d JOIN agents a ON a.id = d.agent_id WHERE d.id = NEW.device_id;
  IF device.has IS NULL OR held > sim.amount(NEW.slot, device.has) THEN
    PERFORM sim.broken('I1', format('device %s of %s holds %s of %s %s', device.device_id, device.name, held, device.has, NEW.slot));
  END IF;
  IF NEW.slot = 'cpu' THEN
    SELECT coalesce(sum(amount), 0) INTO held FROM allocations
      WHERE project_id = NEW.project_id AND slot = 'cpu' AND freed_at IS NULL;
    IF held > (SELECT most FROM sim.limits WHERE holder = NEW.project_id) THEN
      PERFORM sim.broken('I5', format('project %s holds %s cpu', NEW.project_id, held));
    END IF;
    SELECT count(DISTINCT session_id) INTO held FROM allocations
      WHERE owner_id = NEW.owner_id AND slot = 'cpu' AND freed_at IS NULL;
    IF held > (SELECT most FROM sim.limits WHERE holder = NEW.owner_id) THEN
      PERFORM sim.broken('I5', format('user %s has %s sessions', NEW.owner_id, held));
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER held AFTER INSERT ON allocations
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sim.held();

-- I3: what failed is tried again after a pause, and counted. I8: a session goes along the state machine with a growing version, and its
-- history says so. I4: what is over, or waits, holds nothing. I12: what has a
-- place has all of it.
CREATE FUNCTION sim.moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE now record; told text;
BEGIN
  IF NEW.status <> OLD.status AND NOT EXISTS (SELECT FROM sim.moves WHERE a = OLD.status AND b = NEW.status) THEN
    PERFORM sim.broken('I8', format('session %s went from %s to %s', NEW.name, OLD.status, NEW.status));
  END IF;
  IF NEW.version <= OLD.version AND (NEW.status, NEW.status_message) IS DISTINCT FROM (OLD.status, OLD.status_message) THEN
    PERFORM sim.broken('I8', format('session %s changed with version %s after %s', NEW.name, NEW.version, OLD.version));
  END IF;
  IF NEW.status = 'scheduled' AND OLD.status = 'pending' AND (OLD.retry_at > NEW.scheduled_at OR OLD.starts_at > NEW.scheduled_at
      OR EXISTS (SELECT FROM session_dependencies d LEFT JOIN sessions n ON n.id = d.needed_id
        WHERE d.session_id = NEW.id AND n.result IS DISTINCT FROM 'success')) THEN
    PERFORM sim.broken('I8', format('session %s is placed before its time', NEW.name));
  END IF;
  SELECT * INTO now FROM sessions WHERE id = NEW.id;
  SELECT status INTO told FROM sim.history WHERE session = NEW.id;
  IF told IS DISTINCT FROM now.status THEN
    PERFORM sim.broken('I8', format('session %s is %s, its history ends with %s', now.name, now.status, told));
  END IF;
  PERFORM sim.whole(now.id, now.name, now.status, now.terminated_at);
  RETURN NULL;
END $$;

CREATE FUNCTION sim.whole(which uuid, called text, stands text, ended timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (stands IN ('terminated', 'cancelled', 'error')) <> (ended IS NOT NULL) THEN
    PERFORM sim.broken('I8', format('session %s is %s and ended at %s', called, stands, ended));
  END IF;
  IF stands IN ('pending', 'terminated', 'cancelled', 'error') THEN
    IF EXISTS (SELECT FROM allocations a WHERE a.session_id = which AND a.freed_at IS NULL) THEN
      PERFORM sim.broken('I4', format('session %s is %s and holds devices', called, stands));
    END IF;
    IF stands = 'pending' AND EXISTS (SELECT FROM kernels k WHERE k.session_id = which AND k.agent_id IS NOT NULL) THEN
      PERFORM sim.broken('I4', format('session %s is pending and its kernels have agents', called));
    END IF;
    IF EXISTS (SELECT FROM kernels k WHERE k.session_id = which AND (k.terminated_at IS NULL) <> (stands = 'pending')) THEN
      PERFORM sim.broken('I4', format('session %s is %s and its kernels are not', called, stands));
    END IF;
  ELSIF EXISTS (SELECT FROM kernels k, jsonb_each_text(k.slots) want WHERE k.session_id = which AND (k.agent_id IS NULL OR
      sim.amount(want.key, want.value) <> (SELECT coalesce(sum(a.amount), 0) FROM allocations a
        WHERE a.kernel_id = k.id AND a.slot = want.key AND a.agent_id = k.agent_id AND a.freed_at IS NULL))) THEN
    PERFORM sim.broken('I12', format('session %s is %s and has not all it asked for', called, stands));
  END IF;
END $$;
CREATE CONSTRAINT TRIGGER moved AFTER UPDATE ON sessions
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sim.moved();

CREATE FUNCTION sim.told() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE at text;
BEGIN
  SELECT status INTO at FROM sim.history WHERE session = NEW.session_id;
  IF NEW.to_status IS NULL THEN
    RETURN NULL;
  END IF;
  IF at IS DISTINCT FROM NEW.from_status THEN
    PERFORM sim.broken('I8', format('history goes on from %s after %s', NEW.from_status, at));
  END IF;
  IF NEW.result = 'retry' AND NEW.to_status = 'pending' AND at <> 'pending' AND
      NOT EXISTS (SELECT FROM sessions s WHERE s.id = NEW.session_id AND s.retry_at IS NOT NULL) THEN
    PERFORM sim.broken('I3', format('session %s is tried again without a pause', NEW.session_id));
  END IF;
  INSERT INTO sim.history VALUES (NEW.session_id, NEW.to_status)
    ON CONFLICT (session) DO UPDATE SET status = excluded.status;
  RETURN NULL;
END $$;
CREATE TRIGGER told AFTER INSERT ON session_events FOR EACH ROW EXECUTE FUNCTION sim.told();
