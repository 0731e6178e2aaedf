CREATE TABLE "app_ports" ("id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "port" bigint NOT NULL, "app" character varying NOT NULL, "kernel" bigint NOT NULL DEFAULT 0, "session_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "app_ports_sessions_app_ports" FOREIGN KEY ("session_id") REFERENCES "sessions" ("id") ON DELETE CASCADE);
CREATE UNIQUE INDEX "app_ports_port_key" ON "app_ports" ("port");
CREATE UNIQUE INDEX "appport_session_id_app_kernel" ON "app_ports" ("session_id", "app", "kernel");
