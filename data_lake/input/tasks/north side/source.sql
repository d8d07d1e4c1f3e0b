-- patients of the north clinic
CREATE TABLE patients (pid INT PRIMARY KEY, birth_dt DATE, sex CHAR(1));
COMMENT ON COLUMN patients.birth_dt IS 'date of birth';
CREATE TABLE oops (;
CREATE TABLE visits (vid INT, pid INT REFERENCES patients(pid), adm_dt DATE);
