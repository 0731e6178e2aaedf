ALTER TABLE "resource_groups" ADD COLUMN "topology" character varying NOT NULL DEFAULT 'prefer';
