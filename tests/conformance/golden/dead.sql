-- A flow whose attempts are used up.
INSERT INTO flows VALUES ('F2', 'nb:report', 'p2', 'c1', 'dead', NULL, NULL, 0, 0);
INSERT INTO steps VALUES ('F2', 1, 'load#a', 'effect', 1, 'running', NULL, NULL, 0, NULL);
