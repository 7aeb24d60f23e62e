-- A flow that died after a call had failed for good: its error is given back, the unfinished call runs again.
INSERT INTO flows VALUES ('F1', 'nb:report', 'p1', 'c1', 'running', 'a', 1, 0, 0);
-- bare payload: the list [1, 2.5, "x"]
INSERT INTO steps VALUES ('F1', 1, 'load#a', 'effect', 2, 'ok', X'9301CB4004000000000000A178', NULL, 0, 1);
INSERT INTO steps VALUES ('F1', 2, 'ask#q', 'effect', 3, 'error', NULL, 'http', 1, 2);
INSERT INTO steps VALUES ('F1', 3, 'py:random.random#-', 'random', 0, 'ok', X'93010203', NULL, 2, 2);
INSERT INTO steps VALUES ('F1', 4, 'store#s', 'effect', 1, 'running', NULL, NULL, 3, NULL);
