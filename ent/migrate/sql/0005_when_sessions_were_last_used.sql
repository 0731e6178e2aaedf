CREATE TABLE "idle_activities" ("id" uuid NOT NULL, "at" timestamptz NOT NULL, "session_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "idle_activities_sessions_session" FOREIGN KEY ("session_id") REFERENCES "sessions" ("id") ON DELETE CASCADE);
CREATE UNIQUE INDEX "idleactivity_session_id" ON "idle_activities" ("session_id");
